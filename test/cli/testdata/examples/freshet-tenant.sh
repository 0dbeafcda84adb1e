freshet namespace delete sales/eu || true
freshet tenant delete sales || true
