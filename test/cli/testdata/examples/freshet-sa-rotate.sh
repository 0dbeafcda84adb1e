freshet sa create worker
