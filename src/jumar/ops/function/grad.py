"""`mindspore.ops.function.grad`: gradients under the package where MindSpore defines them."""

from jumar.ops.gradients import get_grad, grad, jacfwd, jacrev, jet, jvp, value_and_grad, vjp, vmap

__all__ = ["get_grad", "grad", "jacfwd", "jacrev", "jet", "jvp", "value_and_grad", "vjp", "vmap"]
