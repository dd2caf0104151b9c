package alone
