SELECT acta._fold(10000)
