"""Calls of operators as they are read from the texts of a trace."""

from torch_tb_profiler.model.costs.call import read_call


def test_calls_with_the_same_texts_have_the_same_inputs_but_those_of_lists_have_the_type_of_their_kernel() -> None:
    texts = ["[[[4, 2], [3]], []]", '["TensorList", "Scalar"]', None, '["", "1"]']
    halves, bytes_ = (read_call("aten::cat", texts, f"cat<OpaqueType<{width}u>>") for width in (2, 1))
    assert halves.values == bytes_.values == ("", "1")
    assert [tensor.width for tensor in halves.tensor_list(0)] == [2, 2]
    assert [tensor.width for tensor in bytes_.tensor_list(0)] == [1, 1]
    assert read_call("aten::cat", [*texts[:3], None], "cat<float>").has_values is False
