SELECT acta._begin(true)
