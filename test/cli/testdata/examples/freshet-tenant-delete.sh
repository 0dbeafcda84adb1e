freshet namespace create sales/eu --parents --if-not-exists
