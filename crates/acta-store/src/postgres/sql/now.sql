SELECT acta._now(NULL)
