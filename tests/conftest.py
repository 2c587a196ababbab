"""Over all tests: no secret may show up."""

pytest_plugins = ["guard"]
