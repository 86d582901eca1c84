{delete} WHERE token = $1 AND id {in 2} AND status = 1
