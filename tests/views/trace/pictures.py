"""Traces that the tests of the timeline share."""

PICTURE = """
host  user_annotation  ProfilerStep#1    0  200
host  python_function  train.py(7):~step  5  90
host  python_function  nn.Module:~Net_0  6   80
host  cpu_op           aten::mm         10   40   External id=1
host  cuda_runtime     cudaLaunch       20   10   correlation=7
gpu0  kernel           gemm             60   50   correlation=7 device=0 stream=7
"""

WAITING = """
host  user_annotation  ProfilerStep#1                          0  200
host  cpu_op           enumerate(DataLoader)#_It.__next__      0   60
host  cpu_op           aten::mm                               61   20
host  cuda_runtime     cudaLaunchKernel                       65   10  correlation=1
host  cpu_op           aten::item                             90   40
host  cuda_runtime     cudaStreamSynchronize                  91   38
host  cpu_op           aten::add                             140   30
host  cuda_runtime     cudaLaunchKernel                      150   10  correlation=2
gpu0  kernel           gemm                                   77   43  correlation=1 stream=7
gpu0  kernel           add                                   162   38  correlation=2 stream=7
"""
"""The device waits for data, then for the host, which reads a value and launches next only after that."""
