"""Where agents live: one file a framework, each with an optional extra of its own.

Importing this package imports no framework; importing one of its modules imports that one. An
adapter decides nothing: what is offered, found and answered is the business of
`gateway.discovery`.
"""
