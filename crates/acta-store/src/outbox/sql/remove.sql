{delete} WHERE token = $1 AND {free 2} AND status = 1
