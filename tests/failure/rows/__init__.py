# SPDX-License-Identifier: Apache-2.0
"""The promises of docs/reliability.md, a module for each group of rows; run.sh runs them."""
