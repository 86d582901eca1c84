SELECT {now}
