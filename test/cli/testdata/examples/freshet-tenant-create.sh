freshet sa create shop || true
freshet namespace delete sales/eu || true
freshet tenant delete sales || true
