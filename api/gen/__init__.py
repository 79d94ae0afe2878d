# The modules of the API generator: tables in, C text out. See ../README.md.
#
# SPDX-License-Identifier: Apache-2.0
