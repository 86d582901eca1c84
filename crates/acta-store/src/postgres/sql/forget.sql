SELECT acta._forget(ARRAY[$1::bigint])
