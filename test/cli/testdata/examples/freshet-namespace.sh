freshet namespace delete sales/eu || true
