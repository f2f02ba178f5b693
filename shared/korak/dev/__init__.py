"""What `korak dev` is made of: a directory of its own, an embedded Postgres, the services, and tethered children."""
