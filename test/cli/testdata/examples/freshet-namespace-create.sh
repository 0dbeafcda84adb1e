freshet namespace delete sales/eu || true
freshet namespace delete public/audit || true
