"""Reasons whose recordings are drawn by tests of their own: module -> reason -> the test that tries it."""

from __future__ import annotations

_SOURCES = "tests/model/origins/test_sources.py::"
_REPLAYS = "tests/model/origins/test_replays.py::"
_PACKAGED = "tests/model/origins/test_packaged.py::"
_PEAKS = "tests/views/roofline/test_build.py::"
_BATCHES = f"{_REPLAYS}test_the_batch_size_around_a_replay_chooses_the_smallest_capture_that_it_fits_in"
_NAMELESS = f"{_REPLAYS}test_a_capture_without_names_counts_only_where_count_and_triton_names_agree"
_OTHER_GRAPH = f"{_SOURCES}test_a_record_that_may_be_of_another_graph_says_nothing"
_NO_NODES = f"{_SOURCES}test_a_record_without_nodes_or_lines_is_named_as_the_reason"
_NOT_RECORDED = f"{_SOURCES}test_what_was_not_recorded_is_named_as_the_reason"
_ONLY_WITHOUT = f"{_SOURCES}test_each_reason_holds_only_without_what_it_says_is_missing"
_SPEEDS = "tests/analyses/roofline/test_speeds.py::test_operators_have_the_speed_of_their_own_work"
_NO_RECORD = (
    "tests/model/origins/test_compiled_replays.py::test_what_no_record_has_is_not_blamed_on_a_missing_file"
)
_NODES = f"{_SOURCES}test_node_ids_are_joined_in_both_forms"
_OTHER_CODE = f"{_PACKAGED}test_a_name_that_may_be_of_other_code_says_nothing"
_STAYS = (
    "tests/views/critical_path/test_ranks.py::"
    "test_without_a_collective_of_a_device_the_path_stays_on_its_rank_and_says_why"
)
_MEASURES = "tests/model/counters/test_measures.py::"
_RANGES = "tests/model/counters/test_ranges.py::"
_VERDICT = "tests/model/kernels/test_tensor_cores.py::test_the_verdict_follows_from_the_name_of_a_kernel"

TRIED = {
    "analyses/diff/step_parts.py": {
        "{} recorded no device work: {} ran on the CPU, or the profiler didn't record the device": "tests/views/"
        "diff/test_unrecorded.py::test_two_files_of_a_cpu_have_known_times_and_no_note_on_the_device",
        "{} recorded no runtime calls: {} made none, or the profiler didn't record them": "tests/views/diff/"
        "test_unrecorded.py::test_runtime_calls_are_unknown_where_only_one_side_recorded_any",
    },
    "analyses/kernels/table.py": {
        "the names of all its kernels agree": "tests/views/kernels/test_kernels.py::"
        "test_a_family_of_which_all_kernels_agree_says_so",
    },
    "analyses/roofline/counters.py": {
        "the operator call launched other kernels too, and its shapes can't be split between them": "tests/views/"
        "roofline/test_counters.py::test_counters_stand_beside_what_the_shapes_say",
    },
    "analyses/roofline/speeds.py": {
        "hardware counters were recorded instead of kernel times: the range profiler runs every kernel alone, "
        "several times": "tests/views/roofline/test_counters.py::test_counters_alone_tell_work_but_no_time",
        "it has no device work of its own: it launched none, or a modeled operator inside or around it did": (
            _SPEEDS
        ),
    },
    "analyses/roofline/summary.py": {
        "no recorded operator launched it": "tests/analyses/roofline/test_table.py::"
        "test_kernels_share_the_work_of_their_call_by_time",
    },
    "analyses/shared/breakdown.py": {
        "the profiler didn't record the host": "tests/views/idle/test_words.py::"
        "test_the_explanation_says_that_the_host_is_not_recorded",
        "the trainer recorded its own loop; the PyTorch profiler did not run beside it": "tests/model/"
        "test_trainer.py::test_a_trainer_that_records_no_loader_leaves_it_unknown",
    },
    "analyses/shared/origin_times.py": {
        "its kernels come from several places": "tests/model/origins/test_users.py::"
        "test_kernels_say_where_all_their_launches_come_from",
    },
    "model/costs/formulas/elementwise.py": {
        "what a compiled kernel computes is not recorded": "tests/model/costs/test_formulas.py::"
        "test_a_generated_kernel_moves_its_arguments_and_has_unknown_flops",
    },
    "model/kernels/tensor_cores.py": {
        "names don't show it on this device": _VERDICT,
        "the main kernel of a fused attention": _VERDICT,
        "the name doesn't show it": _VERDICT,
        "work without a matrix product": _VERDICT,
    },
    "model/costs/formulas/matrix.py": {
        "its shapes are not those of a product": "tests/model/costs/test_formulas.py::"
        "test_shapes_that_do_not_fit_a_product_are_unknown",
    },
    "model/costs/models.py": {
        "the user's model of this operator has no formula for it": "tests/model/costs/test_models.py::"
        "test_work_without_a_formula_or_value_is_unknown",
    },
    "model/counters/dispatches.py": {
        "the counter files beside the trace are left out: they are of other kernels, or of the same in another "
        "order": "tests/discovery/test_joined_counters.py::test_counters_in_the_folder_of_a_trace_are_its_own",
    },
    "model/counters/measures.py": {
        "device memory traffic was not counted (`{}`, `{}`)": f"{_MEASURES}"
        "test_traffic_is_the_bytes_read_and_written",
        "it may use {units}, whose operations were not counted": f"{_MEASURES}"
        "test_tensor_cores_count_only_where_their_operations_do",
        "it uses Tensor Cores, whose operations were not counted": f"{_MEASURES}"
        "test_tensor_cores_count_only_where_their_operations_do",
        "it uses matrix cores, whose operations were not counted (`SQ_INSTS_VALU_MFMA_MOPS_F16` and others)": ""
        f"{_MEASURES}test_amd_matrix_cores_count_only_where_their_operations_do",
        "not all of its arithmetic instructions were counted (`SQ_INSTS_VALU_ADD_F32` and the other eleven)": ""
        f"{_MEASURES}test_flops_are_unknown_without_one_of_amds_instructions",
        "not all of its arithmetic instructions were counted (`kineto__cuda_core_flops`)": f"{_MEASURES}"
        "test_flops_are_unknown_without_one_of_the_instructions",
    },
    "model/counters/ranges.py": {
        "kernels of several devices were counted, and ranges don't record which launch was on which": f"{_RANGES}"
        "test_ranges_that_can_not_be_matched_have_no_operators",
        "{} counted ranges for {} kernel launches can't be matched (`profiler_measure_per_kernel=True` counts "
        "every kernel)": f"{_RANGES}test_ranges_that_can_not_be_matched_have_no_operators",
        "the names of the ranges are not those of the launched kernels, in their order": f"{_RANGES}"
        "test_kernels_beside_ranges_must_have_their_names",
    },
    "model/hardware/peaks.py": {
        "the name of the device isn't recorded, so its peak rates aren't known": f"{_PEAKS}"
        "test_a_device_without_a_name_is_said_to_be",
        "the peak rates of an unnamed device with {} units aren't known": f"{_PEAKS}"
        "test_a_device_without_a_name_is_said_to_be",
        "the peak rates of {} aren't known": f"{_PEAKS}test_a_device_that_is_not_known_is_said_to_be",
    },
    "model/origins/alignment.py": {
        "no capture has these kernels in this order": f"{_REPLAYS}"
        "test_a_replay_of_other_kernels_is_not_forced_into_a_capture",
        "the capture has another number of launches than the replay has kernels": _NAMELESS,
        "the capture names too few of its kernels to be sure that it is of this graph": _NAMELESS,
        "the graph has several streams and its kernels have no node IDs, so their order isn't known": _NAMELESS,
        "the replays differ too much to align all of them": f"{_REPLAYS}"
        "test_replays_that_would_take_too_long_to_align_say_so",
    },
    "model/origins/compiled.py": {
        "launched in a compiled region, by a call that no compile record beside the trace has": _NO_RECORD,
        "no compile record was found beside the trace; write one with `torch_tb_profiler.handler`": _OTHER_GRAPH,
        "several compile records fit this graph": _OTHER_GRAPH,
        "the compile records beside the trace are of other graphs": _OTHER_GRAPH,
        "the compile record has no node mapping for this graph (a backward graph has none)": _NO_NODES,
        "the compile record holds no source line for this kernel": _NO_NODES,
    },
    "model/origins/origins.py": {
        "launched by compiled code outside of any operator": _ONLY_WITHOUT,
        "no frame of the program encloses the launch": _ONLY_WITHOUT,
        "launched outside any `nn.Module` call": _NOT_RECORDED,
        "no operator encloses the launch": _NOT_RECORDED,
        "the launch was not recorded": _NOT_RECORDED,
        "replayed from a graph whose capture was not recorded": f"{_REPLAYS}"
        "test_without_a_capture_the_operator_around_the_replay_is_not_that_of_its_kernels",
        "the graph node has neither an annotation nor a launch stack, and the capture was not recorded": _NODES,
    },
    "model/origins/packaged.py": {
        "the record of AOTInductor beside the trace is of another model: it lacks kernels of this trace": (
            _OTHER_CODE
        ),
        "the record of AOTInductor has several calls of this kernel, for different source lines": f"{_PACKAGED}"
        "test_of_calls_in_another_order_that_is_known_on_which_all_agree",
    },
    "model/origins/replayed_kernels.py": {
        "captures of several batch sizes fit": _BATCHES,
        "no capture has a batch size that this batch fits in": _BATCHES,
        "several launches of the capture fit": f"{_REPLAYS}test_a_lost_kernel_leaves_its_equal_neighbor_ambiguous",
        "the capture has no launch of this name that must be this kernel's": f"{_REPLAYS}"
        "test_a_kernel_renamed_to_a_name_of_another_launch_does_not_take_its_operator",
    },
    "model/work/operator_work.py": {
        "this operator has no formula for FLOPs and bytes": "tests/model/costs/test_models.py::"
        "test_an_operator_has_the_work_of_the_users_formulas",
    },
    "views/memory/snapshot/build.py": {
        "the history covers fewer than {} steps, so leaks can't be told (raise `max_entries` of "
        "`_record_memory_history`, or pass `global_record_annotations=True`)": "tests/views/memory/"
        "test_snapshot_growth.py::test_the_layers_of_one_forward_pass_are_no_leak",
    },
    "views/critical_path/ranks.py": {
        "no collective on a device was recorded, so the path can't change ranks where one waits for another": (
            _STAYS
        ),
        "{} still to be read": "tests/views/critical_path/test_ranks.py::"
        "test_while_ranks_are_read_nothing_is_said_of_the_whole_job",
    },
    "views/overlap/words.py": {
        "two ranges of one stream run at once or touch, and the recorder ends both with the first": "tests/views/"
        "overlap/test_build.py::test_what_differs_from_the_record_has_its_reason",
    },
}

PARTS_OF_SENTENCES = {
    "views/_shared/job/verdict.py",
    "views/_shared/wording.py",
    "views/diff/gate.py",
    "views/distributed/problems.py",
    "views/idle/words.py",
    "views/overview/advice.py",
    "views/overview/host_rule_words.py",
    "views/overview/words.py",
}
"""Modules whose reasons are filled into sentences, which have tables of their own: tests/views/test_claims.py."""

NO_REASONS = {
    "session/answers/answer.py": "which files a run has: tests/session/test_dumps.py",
    "summary/build.py": "why a part of a summary is empty: tests/summary",
    "summary/snapshots.py": "which files a run has: tests/summary/test_memory.py",
    "analyses/distributed/operations.py": "an error of a caller",
    "analyses/schedule/causes.py": "a pattern of names",
    "model/hardware/catalog.py": "the form of a file",
    "session/companion_files.py": "how to record",
}
"""Modules with other texts that are constants, or say which files were found."""
