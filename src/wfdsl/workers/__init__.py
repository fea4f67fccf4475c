"""Workers: what answers a call. `protocol` is the contract; each other module is one kind of worker or one duty."""
