"""Calls of operators as they are read from the texts of a trace."""

from json import dumps

from torch_tb_profiler.model.costs.call import Tensor, read_call


def test_calls_with_the_same_texts_have_the_same_inputs_but_those_of_lists_have_the_type_of_their_kernel() -> None:
    texts = ["[[[4, 2], [3]], []]", '["TensorList", "Scalar"]', None, '["", "1"]']
    halves, bytes_ = (read_call("aten::cat", texts, f"cat<OpaqueType<{width}u>>") for width in (2, 1))
    assert halves.values == bytes_.values == ("", "1")
    assert [tensor.width for tensor in halves.tensor_list(0)] == [2, 2]
    assert [tensor.width for tensor in bytes_.tensor_list(0)] == [1, 1]
    assert read_call("aten::cat", [*texts[:3], None], "cat<float>").has_values is False


def test_inputs_beside_lists_of_tensors_and_damage_are_read_with_their_strides() -> None:
    dims = [[4, 2], [[4, 2], [3]], [-1], "x", [], [[2]], [2]]
    types = ["float", "TensorList", "float", "float", "double", "float"]  # one is missing
    strides = [[0, 1], [[2, 1], [0]], [1]]
    call = read_call("aten::cat", [dumps(dims), dumps(types), dumps(strides), dumps(["1", 2])], "cat<c10::Half>")
    members = (Tensor((4, 2), (2, 1), "c10::Half", 2), Tensor((3,), (0,), "c10::Half", 2))
    number = Tensor((), None, "double", 8)
    assert call.inputs == (Tensor((4, 2), (0, 1), "float", 4), members, None, None, number, None, None)
    assert call.values == ("1", "")
