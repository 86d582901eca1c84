SELECT last FROM acta_numbers WHERE one = 1
