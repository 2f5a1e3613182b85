"""A trace that the tests of the timeline share."""

PICTURE = """
host  user_annotation  ProfilerStep#1    0  200
host  python_function  train.py(7):~step  5  90
host  python_function  nn.Module:~Net_0  6   80
host  cpu_op           aten::mm         10   40   External id=1
host  cuda_runtime     cudaLaunch       20   10   correlation=7
gpu0  kernel           gemm             60   50   correlation=7 device=0 stream=7
"""
