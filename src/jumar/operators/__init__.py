"""The operator library: every definition, and every schedule by which a target runs it.

Importing this room fills `ir.REGISTRY`.  Operators are classes (`Exp`); the functions beside them (`exp`, `add`, `select`,
`reshape` ...) apply them to nodes and plain numbers, so that decompositions, gradients and importer rules read as formulas.
A new file of schedules in `cpu/` needs no entry: all of them are imported when a target's schedules are first asked for (`schedules`).
"""

# isort: off
from jumar.operators.families import (  # fmt: skip
    Composite, Contraction, Elementwise, Movement, Reduction, Source, Special, normal_axes, normal_axis, numel, wide,
)  # fmt: skip
from jumar.operators.elementwise import (  # fmt: skip
    Abs, Acos, Acosh, Add, And, Asin, Asinh, Atan, Atanh, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Cast, Ceil, Cos, Cosh, Div,
    Equal, Erf, Exp, Expm1, Floor, FloorDiv, Greater, GreaterEqual, Identity, IsInf, IsNan, Less, LessEqual, Log, Log1p, Maximum,
    Minimum, Mod, Mul, Neg, Not, NotEqual, Or, Pow, Reciprocal, Relu, Round, Rsqrt, Select, ShiftLeft, ShiftRight, Sigmoid, Sign, Sin,
    Sinh, Sqrt, Square, StopGradient, Sub, Tan, Tanh, Trunc, Xor, add, cast, convert, cos, cosh, div, equal, exp, greater, greater_equal, less,
    less_equal, log, maximum, minimum, mul, neg, number, power, select, sign, sin, sinh, sqrt, square, sub,
)  # fmt: skip
from jumar.operators.activation import (  # fmt: skip
    Celu, Clip, Elu, Gelu, HardSigmoid, HardSwish, LeakyRelu, Mish, PRelu, Selu, Silu, Softplus, Softsign, ThresholdedRelu,
)  # fmt: skip
from jumar.operators.reduction import (  # fmt: skip
    ArgMax, ArgMin, CumProd, CumSum, ReduceAll, ReduceAny, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
)  # fmt: skip
from jumar.operators.movement import (  # fmt: skip
    BitCast, Broadcast, Concat, Gather, GatherElements, GatherGrad, GatherNd, Iota, Pad, Reshape, ScatterElements, ScatterNd, Slice, Transpose,
    broadcast_to, concat, reshape, slice_axis, sum_to, transpose,
)  # fmt: skip
from jumar.operators.contraction import Conv, ConvTranspose, Einsum, MatMul
from jumar.operators.conv_grad import ConvGradInput, ConvGradWeight
from jumar.operators.pooling import AvgPool, AvgPoolGrad, LpPool, MaxPool, MaxPoolGrad, MaxPoolIndices, MaxUnpool
from jumar.operators.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LogSoftmax, LpNorm, Lrn, RmsNorm, Softmax
from jumar.operators.batch_norm import BatchNormGrad, BatchNormTrain
from jumar.operators.batch_norm_parts import BatchNormGradReduce, BatchNormGradUpdate, BatchNormReduce, BatchNormUpdate
from jumar.operators.attention import Attention, LinearAttention, RotaryEmbedding
from jumar.operators.attention_grad import AttentionGrad
from jumar.operators.recurrent import Gru, Lstm, Rnn
from jumar.operators.recurrent_grad import GruGrad, LstmGrad, RnnGrad
from jumar.operators.quantize import Dequantize, Lookup, Quantize, bounds, integer_conv, integer_matmul
from jumar.operators.random import Bernoulli, Multinomial, RandomBits, RandomNormal, RandomUniform, philox
from jumar.operators.image import Col2Im, DeformConv, GridSample, ImageDecode, MaxRoiPool, Resize, RoiAlign
from jumar.operators.signal import Dft, Stft
from jumar.operators.sort import Compress, Det, Ngrams, NonMaxSuppression, NonZero, TopK, Unique
from jumar.operators.sequence_loss import CtcLoss, SuppressOverlaps, ctc_ways
from jumar.operators.linalg import Cholesky, Eigh, Eigvals, Inverse, Qr, Solve, SolveTriangular, Svd
from jumar.operators.fused import Fused
from jumar.operators.batchwise import Batchwise
from jumar.operators.after import After
from jumar.operators.opaque import Opaque
from jumar.operators.gradient import Gradient
from jumar.operators.schedule import (  # fmt: skip
    Lowered, Packed, Place, Schedule, Task, TaskArg, Temp, TempPlace, find_schedule, schedule, schedules,
)  # fmt: skip
from jumar.operators.fusible import has_own_schedule, is_one_nest, is_root, refusal
from jumar.operators.activation import Activation as Formula  # the face gives the name Activation to those of recurrent cells
from jumar.operators.attention import MINUS_INFINITY, attention_scores, attention_values, attention_weights, masked
from jumar.operators.contraction import fitted, matmul
from jumar.operators.families import broadcast
from jumar.operators.normalization import widened
from jumar.operators.recurrent import Activation, Recurrent
from jumar.operators.signal import Mel, mel_matrix, window
# isort: on

__all__ = [
    "Abs", "Acos", "Acosh", "Activation", "Add", "add", "After", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "Attention",
    "AttentionGrad", "attention_scores", "attention_values", "attention_weights", "AvgPool", "AvgPoolGrad", "BatchNorm", "BatchNormGrad", "BatchNormGradReduce",
    "BatchNormGradUpdate", "BatchNormReduce",
    "BatchNormTrain", "BatchNormUpdate",
    "Batchwise",
    "Bernoulli", "BitCast", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "bounds", "Broadcast", "broadcast", "broadcast_to",
    "Cast", "cast", "Ceil", "Celu", "Clip", "Col2Im", "Composite", "Compress", "Concat", "concat", "Contraction", "Conv", "convert",
    "ConvGradInput", "ConvGradWeight", "ConvTranspose", "Cos", "cos", "Cosh", "cosh", "CumProd", "CumSum", "DeformConv",
    "Dequantize", "Det", "Dft", "Div", "div", "Einsum", "Elementwise", "Elu", "Equal", "equal", "Erf", "Exp", "exp", "Expm1",
    "find_schedule", "fitted", "Floor", "FloorDiv", "Formula", "Fused", "Gather", "GatherElements", "GatherGrad", "GatherNd", "Gelu", "Gradient", "Greater",
    "greater", "greater_equal", "GreaterEqual", "GridSample", "GroupNorm", "Gru", "GruGrad", "HardSigmoid", "HardSwish", "has_own_schedule",
    "Identity", "ImageDecode", "InstanceNorm", "integer_conv", "integer_matmul", "Iota", "is_one_nest", "is_root", "IsInf", "IsNan",
    "LayerNorm", "LeakyRelu", "Less", "less",
    "less_equal", "LessEqual", "LinearAttention", "Log", "log", "Log1p", "LogSoftmax", "Lookup", "Lowered", "LpNorm", "LpPool", "Lrn", "Lstm",
    "LstmGrad", "masked", "MatMul", "matmul", "Maximum", "maximum", "MaxPool", "MaxPoolGrad", "MaxPoolIndices", "MaxRoiPool", "MaxUnpool",
    "Mel", "mel_matrix", "Minimum", "minimum", "MINUS_INFINITY", "Mish", "Mod", "Movement", "Mul", "mul", "Multinomial", "Neg", "neg",
    "Ngrams", "NonMaxSuppression", "NonZero", "normal_axes", "normal_axis", "Not", "NotEqual", "number", "numel", "Opaque", "Or", "Packed",
    "Pad", "philox", "Place", "Pow", "power", "PRelu", "Quantize", "RandomBits", "RandomNormal", "RandomUniform", "Reciprocal", "Recurrent",
    "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reduction", "refusal", "Relu", "Reshape",
    "reshape", "Resize", "RmsNorm", "Rnn", "RnnGrad", "RoiAlign", "RotaryEmbedding", "Round", "Rsqrt", "ScatterElements", "ScatterNd",
    "Schedule", "schedule", "schedules", "Select", "select", "Selu", "ShiftLeft", "ShiftRight", "Sigmoid", "Sign", "sign", "Silu", "Sin",
    "sin", "Sinh", "sinh", "Slice", "slice_axis", "Softmax", "Softplus", "Softsign", "Source", "Special", "Sqrt", "sqrt", "Square",
    "square", "Stft", "StopGradient", "Sub", "sub", "sum_to", "Tan", "Tanh", "Task", "TaskArg", "Temp", "TempPlace", "ThresholdedRelu",
    "TopK", "Transpose", "transpose", "Trunc", "Unique", "wide", "widened", "window", "Xor",
    "Cholesky", "CtcLoss", "ctc_ways", "SuppressOverlaps", "Eigh", "Eigvals", "Inverse", "Qr", "Solve", "SolveTriangular", "Svd",
]  # fmt: skip
