"""Makes the dashboards of Grafana that `gateway dashboards export` writes, of `panels.yaml`.

* ``python -m dashboards`` writes them to ``gateway/cli/dashboards``, a part of the wheel; a test
  compares the two.
* It needs `grafana-foundation-sdk`, which users do not need.
"""
