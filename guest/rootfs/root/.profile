# SPDX-License-Identifier: BSD-2-Clause
PS1='\h:\w\$ '
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
