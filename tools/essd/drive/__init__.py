# SPDX-License-Identifier: BSD-2-Clause
"""What a running drive is asked, over its management channel, UART and I2C buses."""
