{delete} WHERE id {in 1} AND status = 3
