freshet sa create shop || true
