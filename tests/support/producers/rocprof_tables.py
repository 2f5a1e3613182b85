"""Draws a recording as the tables of rocprofv3 (`--output-format csv`): without bytes of copies or a rank."""

from __future__ import annotations

from tests.support.producers.rocprof import (
    BOOT,
    CPU_INDEX,
    GPU_INDEX,
    KERNELS,
    LISTS,
    MAIN,
    PID,
    RocprofRun,
    agents,
)


def tables(
    run: RocprofRun, *, streams: bool = True, label: str = "Agent {}", index: int = GPU_INDEX
) -> dict[str, str]:
    """Return file name after the process id -> table; `streams=False` as before ROCm 7.

    label, index  how a device is called, and which number its GPU has
    """
    gpu, cpu = (label.format(each) for each in (index, CPU_INDEX))
    calls = dict.fromkeys(LISTS.values(), "")
    for call in run.calls:
        place = f'"{call.domain}","{call.message or call.name}",{PID},{call.tid},{call.correlation}'
        calls[LISTS[call.domain]] += f"{place},{BOOT + call.start},{BOOT + call.end}\n"
    kernels, copies = "", ""
    for number, each in enumerate(run.dispatches, 1):
        place = f'"{gpu}",{each.queue},{f"{each.stream}," if streams else ""}{MAIN},{number},{each.kernel + 1}'
        times = f"{each.correlation},{BOOT + each.start},{BOOT + each.end}"
        sizes = ",".join(map(str, (*each.block, *each.grid)))
        kernels += f'"KERNEL_DISPATCH",{place},"{KERNELS[each.kernel]}",{times},4096,0,32,0,16,{sizes}\n'
    for copy in run.copies:
        source, target = (cpu, gpu) if copy.to_device else (gpu, cpu)
        operation = copy.operation if streams else copy.operation.removeprefix("MEMORY_COPY_")
        place = f'"{operation}",{f"{copy.stream}," if streams else ""}"{source}","{target}"'
        copies += f'"MEMORY_COPY",{place},{copy.correlation},{BOOT + copy.start},{BOOT + copy.end}\n'
    time_columns, stream = ["Correlation_Id", "Start_Timestamp", "End_Timestamp"], ["Stream_Id"] * streams
    size_columns = [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"]
    headers = {
        "kernel_trace": ["Kind", "Agent_Id", "Queue_Id", *stream, "Thread_Id", "Dispatch_Id", "Kernel_Id",
                         "Kernel_Name", *time_columns, "LDS_Block_Size", "Scratch_Size", "VGPR_Count",
                         "Accum_VGPR_Count", "SGPR_Count", *size_columns],
        "memory_copy_trace": ["Kind", "Direction", *stream, "Source_Agent_Id", "Destination_Agent_Id",
                              *time_columns],
        **{f"{each}_trace": ["Domain", "Function", "Process_Id", "Thread_Id", *time_columns] for each in calls},
        "agent_info": ["Node_Id", "Logical_Node_Id", "Agent_Type", "Cu_Count", "Wave_Front_Size", "Name",
                       "Vendor_Name", "Product_Name", "Model_Name"],
    }  # fmt: skip
    described = "".join(
        f'{each["node_id"]},{each["logical_node_id"]},"{("CPU", "GPU")[each["type"] - 1]}",{each["cu_count"]},'
        f'{each.get("wave_front_size", 0)},"{each["name"]}","AMD","{each["product_name"]}",""\n'
        for each in agents()
    )
    rows = {
        "kernel_trace": kernels,
        "memory_copy_trace": copies,
        **{f"{key}_trace": value for key, value in calls.items()},
        "agent_info": described,
    }
    return {
        name: ",".join(f'"{column}"' for column in headers[name]) + "\n" + text
        for name, text in rows.items()
        if text
    }
