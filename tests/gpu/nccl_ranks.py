"""What NCCL can serve on this machine."""

import ctypes


def nccl_ranks():
    """The most ranks, each with a GPU of its own; 0 where NCCL or the driver is not installed."""
    gpus = ctypes.c_int(0)
    try:
        ctypes.CDLL("libnccl.so.2")
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(gpus))
    return gpus.value
