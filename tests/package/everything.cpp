// Nothing of its own: the module takes in all rooms, so that what they need shows in what it needs.
