freshet sa create reader
