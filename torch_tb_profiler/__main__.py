"""`python -m torch_tb_profiler`: the command line."""

import sys

from torch_tb_profiler.cli import main

sys.exit(main())
