"""What CANN's operator types are made of: the family of a kernel, its vector work an element, its stages.

In: an operator type as a profile or the compiler names it (`SoftmaxV2`, `aclnnInplaceAdd`, `ConcatD`).  Out: `Kind`, read by work.py.
The numbers come from what the operator computes (its formula and the instructions that the vector unit has for it), none is fitted.
A name that is not listed is read by its parts: `FooNormGrad` is a norm, `ForeachFoo` an elementwise kernel over lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

# families: what shapes the time of a kernel
ELEMENTWISE, FOREACH, OPTIMISER, FILL, COPY, SLICE, TRANSPOSE, TRANSDATA = (
    "elementwise", "foreach", "optimiser", "fill", "copy", "slice", "transpose", "transdata",
)  # fmt: skip
REDUCE, NORM, SOFTMAX, ROPE, GLU, GATHER, SCATTER, SORT, POOL, RESAMPLE = (
    "reduce", "norm", "softmax", "rope", "glu", "gather", "scatter", "sort", "pool", "resample",
)  # fmt: skip
MATMUL, CONV, ATTENTION, RECURRENT, RANDOM, COMMUNICATE, META = "matmul", "conv", "attention", "recurrent", "random", "communicate", "meta"
FAMILIES = (
    ELEMENTWISE, FOREACH, OPTIMISER, FILL, COPY, SLICE, TRANSPOSE, TRANSDATA, REDUCE, NORM, SOFTMAX, ROPE, GLU, GATHER, SCATTER, SORT, POOL,
    RESAMPLE, MATMUL, CONV, ATTENTION, RECURRENT, RANDOM, COMMUNICATE, META,
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What is known of an operator type before its shapes.   name: without CANN's suffixes (`Softmax`); family: one of FAMILIES.

    ops: vector instructions an element (a division, root or exponential counts as two: half the lanes).
    stages: parts of the kernel that wait for each other (a softmax: maximum, exponential, sum, quotient).
    listed: the table knows it; else family and ops were guessed from the name or, where that says nothing, left to the shapes (family empty).
    """

    name: str
    family: str
    ops: float = 1.0
    stages: int = 1
    listed: bool = True


# family, ops, stages: names
_TABLE: tuple[tuple[str, float, int, str], ...] = (
    (ELEMENTWISE, 1, 1, """Abs Add Sub Mul Neg Maximum Minimum Adds Muls Relu Cast BiasAdd AssignAdd AssignSub InplaceAdd InplaceSub StrideAdd
        BitwiseAnd BitwiseOr BitwiseNot BitwiseXor LogicalAnd LogicalOr LogicalNot LogicalXor Invert LeftShift RightShift Real Imag Conj
        AccumulateNV AccumulateNv AddN Eltwise Threshold Mins Maxs"""),
    (ELEMENTWISE, 2, 1, """Square Axpy MulAddn FusedMulAdd FusedMulAddN Addcmul ClipByValue Relu6 LeakyRelu Reciprocal Equal NotEqual
        Greater GreaterEqual Less LessEqual ApproximateEqual Sign Signbit MaskedScale ReluGrad DropOutDoMask DropOutDoMaskV3D ThresholdGrad
        PRelu Prelu Inv SqrtGrad Heaviside Sqrt Exp Log Div DivNoNan Rint Round Floor Ceil Trunc TanhGrad SigmoidGrad SquaredDifference
        MulNoNan Dequantize DropOutV Hardtanh HardtanhGrad HardShrink SoftShrink Softshrink Shrink FatreluMul"""),
    (ELEMENTWISE, 3, 1, """Select Where MaskedFill IsNan IsInf IsFinite IsPosInf IsNegInf NanToNum Rsqrt Lerp Addcdiv LeakyReluGrad Relu6Grad
        HardSigmoid HardSigmoidGrad SoftMarginLoss FusedMulAddAdd ClipByNormNoDivSum SquaredRelu IsClose InvGrad RsqrtGrad
        HardShrinkGrad SoftShrinkGrad SoftshrinkGrad AbsGrad PReluGrad Expm1 Log1p LambNextRight"""),
    (ELEMENTWISE, 5, 1, """Sigmoid Swish Silu FastGelu Mod FloorMod FloorDiv TruncateDiv TruncateMod HardSwish HardSwishGrad Elu EluGrad Selu SeluGrad
        Celu Softsign SoftsignGrad Xlogy Xdivy Xlog1py LogSigmoid LogSigmoidGrad BinaryCrossEntropy BinaryCrossEntropyGrad
        SigmoidCrossEntropyWithLogits SigmoidCrossEntropyWithLogitsGrad SmoothL1Loss SmoothL1LossGrad MseLoss MseLossGrad HuberLoss HuberLossGrad
        L1LossGrad KlDivLossGrad Logit LogitGrad AscendQuant AscendDequant AscendRequant AscendAntiQuant Quantize FakeQuantAffineCachemask
        FakeQuantWithMinMaxVars FakeQuantWithMinMaxArgs QuickGelu ComplexAbs Modulate GaussianNllLoss PoissonNllLoss"""),
    (ELEMENTWISE, 8, 1, """Tanh Softplus SoftplusGrad SwishGrad SiluGrad FastGeluGrad Mish Gelu Pow Pows Power Cosh Sinh Atan2 GeluMul SiluMul
        Log2 Log10 Pow2 Polar Angle"""),
    (ELEMENTWISE, 15, 1, "Erf Erfc MishGrad GeluGrad Tan Asin Acos Atan Asinh Acosh Atanh Sinc AsinGrad AcosGrad AtanGrad"),
    (ELEMENTWISE, 30, 1, "Sin Cos Erfinv ErfInv Lgamma Digamma Ndtri Dawsn Zeta BesselI0e BesselI1e Spence FresnelCos FresnelSin Igamma"),
    (GLU, 6, 1, "SwiGlu Swiglu GLU GeGlu SwigluClamp ClippedSwiglu SituGlu"),
    (GLU, 12, 1, """SwiGluGrad GLUGrad GeGluGrad DequantSwigluQuant SwiGluQuant SwigluQuant DequantSituQuant SwigluMxQuant SwigluGroupQuant ClippedSwigluGrad"""),
    (FOREACH, 1, 1, """ForeachAddList ForeachAddScalar ForeachAddScalarList ForeachMulScalar ForeachMulScalarList ForeachMulList ForeachSubList
        ForeachSubScalar ForeachCopy ForeachNeg ForeachAbs ForeachZero ForeachZeroInplace ForeachMaximumList ForeachMinimumList"""),
    (FOREACH, 3, 1, "ForeachAddcmulList ForeachAddcmulScalar ForeachAddcmulScalarList ForeachLerpScalar ForeachLerpList ForeachSqrt ForeachExp ForeachReciprocal"),
    (FOREACH, 4, 1, """ForeachAddcdivList ForeachAddcdivScalar ForeachAddcdivScalarList ForeachDivList ForeachDivScalar ForeachDivScalarList
        ForeachPowScalar ForeachNonFiniteCheckAndUnscale NonFiniteCheck ForeachNorm FusedSgd"""),
    (OPTIMISER, 3, 1, "SGD Sgd ApplyGradientDescent ApplyMomentum ApplyKerasMomentum FusedMulApplyMomentum FusedMulApplyKerasMomentum LarsUpdate ApplySgd"),
    (OPTIMISER, 10, 1, """AdamW ApplyAdam Adam ApplyAdamW FusedAdamw AdamApplyOne AdamApplyOneWithDecay AdamApplyOneAssign AdamApplyOneWithDecayAssign ApplyAdagrad
        ApplyRMSProp ApplyRmsProp ApplyFtrl ApplyAdadelta ApplyAdamax ApplyAdaMax ApplyCenteredRMSProp ApplyFusedEmaAdam LambApplyOptimizerAssign
        LambApplyWeightAssign LambNextMV LambNextMVWithDecay LambUpdateWithLr ApplyAdamWQuant"""),
    (FILL, 1, 1, "ZerosLike OnesLike Fill Fills MemSet Range Arange LinSpace LinSpaceD Eye FillDiagonal Zeros Ones Full OneHot Onehot OneHotD TensorFill"),
    (COPY, 0, 1, """TensorMove Identity IdentityN Assign Reshape Squeeze Unsqueeze Flatten ExpandDims TensorRedirect Bitcast Memcpy
        MemcpyAsync Copy FlattenCompact Clone"""),
    (SLICE, 0, 1, """Slice StridedSlice StridedSliceAssign StridedSliceGrad SliceGrad Concat Split SplitD SplitV SplitVD Pack Unpack Stack Unstack Pad
        MirrorPad PadGrad BroadcastTo Broadcast Tile TileWithAxis Expand ViewCopy AsStrided Roll Reverse ReverseSequence Tril Triu Trilu DepthToSpace
        SpaceToDepth SpaceToBatch SpaceToBatchND BatchToSpace BatchToSpaceND Crop RepeatInterleave CircularPad ReflectionPad1d ChunkCat SliceLastDim
        SliceWrite SliceWithAxes Im2col Im2Col Col2Im ExtractImagePatches PhonyConcat PhonySplit KVCacheUpdate PromptKVCache Diag DiagPart MatrixDiag"""),
    (TRANSPOSE, 0, 1, "Transpose TransposeD Permute ConfusionTransposeD ConfusionTranspose ConjugateTranspose TransformBiasRescaleQkv Transposev"),
    (TRANSDATA, 0, 1, "TransData TransDataRNN FormatTransfer TransArgb"),
    (REDUCE, 1, 2, """ReduceSum ReduceMax ReduceMin ReduceProd ReduceAny ReduceAll ReduceMean ReduceMeanWithCast BiasAddGrad L2Loss SquareSum SquareSumAll
        LpNorm LpNormReduce LpNormUpdate ReduceLogSumExp EuclideanNorm ReduceStd ReduceStdUpdate ReduceStdWithMean ReduceVar BNTrainingReduce
        BN3DTrainingReduce GNTrainingReduce INTrainingReduce LpLoss Mean Sum GroupedBiasAddGrad QuantMax GroupedQuantMax SegmentSum
        Trace NPUGetFloatStatus NPUClearFloatStatus NPUAllocFloatStatus Dot CountNonzero HcPreInvRms"""),
    (REDUCE, 3, 2, "ArgMax ArgMin ArgMaxWithValue ArgMinWithValue ArgMaxD NLLLoss NLLLossGrad NllLoss NllLossGrad Median KthValue CosineSimilarity"),
    (REDUCE, 3, 2, "Cumsum Cumprod CumulativeLogsumexp Cummax Cummin CumsumD Histogram Bincount"),
    (NORM, 6, 3, """RmsNorm GemmaRmsNorm AddRmsNorm InplaceAddRmsNorm L2Normalize RmsNormQuant RmsNormDynamicQuant DynamicQuant AddRmsNormQuant AddRmsNormCast
        AddRmsNormDynamicQuant DynamicQuantUpdateScatter LRN DynamicBlockQuant GroupQuant DynamicMxQuant KvRmsNormRopeCache QuantizeAddLayerNorm
        Normalize RenormV Renorm FusedAddRmsNorm"""),
    (NORM, 9, 4, """LayerNorm AddLayerNorm InplaceAddLayerNorm AddLayerNormQuant DeepNorm GroupNorm GroupNormSilu GroupNormSwish InstanceNorm AdaLayerNorm
        AdaLayerNormQuant BatchNorm GroupNormRelu MVN HcPreSinkhorn HcPre HcPost SwinTransformerLnQKV Centralization"""),
    (NORM, 4, 2, """BNInfer BNTrainingUpdate BN3DTrainingUpdate INInfer INTrainingUpdate GNTrainingUpdate BnInferGrad BNInferGrad BNTrainingReduceGrad
        BNTrainingUpdateGrad"""),
    (NORM, 20, 4, """RmsNormGrad LayerNormGrad AddLayerNormGrad DeepNormGrad GroupNormGrad BatchNormGrad LayerNormXBackprop LayerNormBetaGammaBackprop
        InstanceNormGrad AdaLayerNormGrad L2NormalizeGrad GroupNormSwishGrad"""),
    (SOFTMAX, 8, 5, """Softmax LogSoftmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits ScaledMaskedSoftmax MaskedSoftmaxWithRelPosBias
        CrossEntropyLoss AxpyWithSoftmaxAndDropOutDoMask SoftmaxCrossEntropyLoss SoftmaxV AttentionSoftmax"""),
    (SOFTMAX, 6, 4, """SoftmaxGrad LogSoftmaxGrad SoftmaxGradExt ScaledMaskedSoftmaxGrad CrossEntropyGrad CrossEntropyLossGrad ConfusionSoftmaxGrad
        MaskedSoftmaxWithRelPosBiasGrad"""),
    (ROPE, 8, 1, """RoPE RotaryPositionEmbedding RotaryPositionEmbeddingGrad RoPEGrad ApplyRotaryPosEmb InterleaveRope RopeWithSinCosCache RotaryMul RotaryMulGrad
        DequantRopeQuantKvcache RopeQuantKvcache Rope"""),
    (GATHER, 0, 1, """Gather GatherNd GatherElements Index IndexByTensor EmbeddingLookup Embedding EmbeddingBag IndexSelect Take MaskedSelect NonZero
        MoeInitRouting MoeInitRoutingQuant MoeTokenPermute MoeReRouting MoeTokenPermuteWithEp MoeTokenPermuteWithRoutingMap GatherPaKvCache MoeGather"""),
    (GATHER, 2, 1, "MoeTokenUnpermute MoeFinalizeRouting MoeTokenUnpermuteWithEp MoeTokenUnpermuteWithRoutingMap MoeTokenUnpermuteGrad MoeTokenPermuteGrad"),
    (SCATTER, 0, 1, """ScatterNdUpdate ScatterUpdate ScatterElements ScatterAdd ScatterNdAdd ScatterNd Scatter IndexPut IndexPutWithSort InplaceIndexAdd InplaceUpdate
        TensorScatterUpdate EmbeddingDenseGrad UnsortedSegmentSum IndexFill IndexFillD InplaceScatterAdd ScatterList ReshapeAndCache ScatterPaKvCache
        MaskedScatter QuantUpdateScatter TensorScatterAdd SparseToDense InplaceIndexFill IndexAdd ScatterSub ScatterMax ScatterMin KvCacheUpdate"""),
    (SORT, 1, 3, """Sort TopK MoeGatingTopK MoeGatingTopKSoftmax SortWithIndex ApplyTopKTopPWithSorted Unique UniqueConsecutive UniqueWithCounts Argsort SearchSorted
        RadixSort RadixTopK InTopK NMSWithMask NonMaxSuppression BatchMultiClassNonMaxSuppression StatelessRandperm TopKTopPSample Bucketize"""),
    (POOL, 1, 1, "MaxPool MaxPool3D AvgPool AvgPool3D AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool2d AdaptiveMaxPool3d GlobalAveragePool AvgPool1D GlobalLpPool"),
    (POOL, 3, 2, """MaxPoolWithArgmax MaxPool3DWithArgmax MaxPoolGradWithArgmax MaxPoolGrad AvgPoolGrad AvgPool3DGrad MaxPool3DGrad MaxPool3DGradWithArgmax
        AdaptiveAvgPool2dGrad AdaptiveAvgPool3dGrad"""),
    (RESAMPLE, 8, 1, """ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad ResizeBicubic ResizeBicubicGrad Resize ResizeD
        ResizeTrilinear ResizeLinear UpsampleNearest3d GridSample GridSampler2D GridSampler3D GridSampler2DGrad ROIAlign ROIAlignGrad CropAndResize DeformableOffsets
        DeformableOffsetsGrad SpatialTransformer IMGWarp MultiScaleDeformableAttnFunction MultiScaleDeformableAttentionGrad PSROIPooling ROIPooling UpsampleTrilinear3d"""),
    (MATMUL, 0, 1, """MatMul BatchMatMul GEMM Gemm FullyConnection GroupedMatmul GroupedMatMul QuantMatmul WeightQuantBatchMatmul TransposeBatchMatMul
        MatmulAllReduce AllGatherMatmul MatmulReduceScatter QuantGroupedMatmul FusedMatMul GroupedMatmulSwigluQuant GroupedMatmulFinalizeRouting MlaProlog MlaPreprocess
        Ger Addr AddLora MatmulCompress FFN FusedQuantMatMul Compressor MatMulCompress QuantMatmulDequant TransposeQuantBatchMatMul"""),
    (CONV, 0, 1, """Conv2D Conv3D DepthwiseConv2D Conv2DTranspose Conv3DTranspose Conv2DBackpropInput Conv2DBackpropFilter Conv3DBackpropInput
        Conv3DBackpropFilter DepthwiseConv2DBackpropInput DepthwiseConv2DBackpropFilter QuantConv2D QuantConv3D ExtendConv2D ExtendConvTranspose Conv2DCompress DeformableConv2D
        Conv1D Deconvolution"""),
    (ATTENTION, 14, 5, """FlashAttentionScore FusedInferAttentionScore PromptFlashAttention IncreFlashAttention PagedAttention RingMLAPrefill RINGMLAPrefill MLA SparseFlashAttention
        LightningIndexer MultiHeadAttention SparseAttnSharedkv NsaCompressAttention NsaSelectedAttention UnpadFlashAttention SelfAttention MultiLatentAttention"""),
    (ATTENTION, 30, 6, "FlashAttentionScoreGrad NsaSelectedAttentionGrad SparseFlashAttentionGrad LightningIndexerGrad"),
    (RECURRENT, 20, 4, "DynamicRNN DynamicGRU CommonLSTM CommonGRU BasicLSTMCell Gru DynamicLSTM ThnnFusedLstmCell"),
    (RANDOM, 20, 1, """DSARandomUniform DSARandomNormal DSAGenBitMask DSAStatelessGenBitMask DropOutGenMask StatelessDropOutGenMask RandomUniform RandomStandardNormal
        StatelessRandomUniform StatelessRandomNormal StatelessNormal StatelessUniform StatelessBernoulli Bernoulli Multinomial TruncatedNormal
        DSARandomTruncatedNormal DSAStatelessRandomUniform RandomUniformInt Exponential StatelessExponential"""),
    (COMMUNICATE, 0, 1, """AllReduce AllGather ReduceScatter AllToAll AlltoAll AllToAllv Broadcast_ HcomAllReduce HcomAllGather HcomReduceScatter HcomBroadcast HcomAllToAll
        HcomAllToAllV HcomSend HcomReceive MoeDistributeDispatch MoeDistributeCombine DistributeBarrier Send Receive hcom_allReduce_ hcom_allGather_ hcom_broadcast_
        hcom_reduceScatter_ hcom_alltoallv_ MoeDistributeCombineAddRmsNorm"""),
    (META, 0, 1, "Shape ShapeN Size Rank GetShape Const Constant Data BroadcastGradientArgs ConcatOffset GatherShapes Enter Merge Switch NoOp NetOutput PartitionedCall"),
)  # fmt: skip

# one operator under several names
_ALIASES = {
    "DtypeCast": "Cast", "RealDiv": "Div", "SoftmaxV": "Softmax", "QuantBatchMatmul": "QuantMatmul", "QuantBatchMatMul": "QuantMatmul",
    "ApplyAdamW": "AdamW", "RotaryPositionEmbedding": "RoPE", "RotaryPositionEmbeddingGrad": "RoPEGrad", "MatMulCompress": "MatMul", "Matmul": "MatMul",
    "BatchMatmul": "BatchMatMul", "Sgd": "SGD", "Swiglu": "SwiGlu", "GroupedMatMul": "GroupedMatmul", "OneHotD": "OneHot", "Onehot": "OneHot",
    "TransposeD": "Transpose", "NllLoss": "NLLLoss", "ErfInv": "Erfinv", "Im2Col": "Im2col", "Silu": "Swish", "Copy": "TensorMove", "Broadcast_": "HcomBroadcast",
    "BroadcastToD": "BroadcastTo", "FillD": "Fill", "RINGMLAPrefill": "RingMLAPrefill", "RINGMLAPrefillBFKernel": "RingMLAPrefill", "Arange": "Range",
    "Full": "Fill", "ArgMaxD": "ArgMax", "InplaceAddRmsNorm": "AddRmsNorm", "SliceD": "Slice", "SplitD": "Split", "SplitVD": "SplitV",
}  # fmt: skip

# names by their parts, first hit counts: (part, family, ops, stages)
_PARTS: tuple[tuple[str, str, float, int], ...] = (
    ("Foreach", FOREACH, 2, 1), ("Dispatch", COMMUNICATE, 0, 1), ("Combine", COMMUNICATE, 0, 1), ("AllReduce", COMMUNICATE, 0, 1), ("AllGather", COMMUNICATE, 0, 1),
    ("AllToAll", COMMUNICATE, 0, 1), ("AlltoAll", COMMUNICATE, 0, 1), ("ReduceScatter", COMMUNICATE, 0, 1), ("Hcom", COMMUNICATE, 0, 1), ("hcom", COMMUNICATE, 0, 1),
    ("AttentionScoreGrad", ATTENTION, 30, 6), ("AttentionGrad", ATTENTION, 30, 6), ("Attention", ATTENTION, 14, 5), ("Attn", ATTENTION, 14, 5), ("MLA", ATTENTION, 14, 5),
    ("Mla", MATMUL, 0, 1), ("Indexer", ATTENTION, 14, 5), ("MatMul", MATMUL, 0, 1), ("Matmul", MATMUL, 0, 1), ("Gemm", MATMUL, 0, 1), ("GEMM", MATMUL, 0, 1),
    ("Conv", CONV, 0, 1), ("TopK", SORT, 1, 3), ("Sort", SORT, 1, 3), ("Unique", SORT, 1, 3), ("NMS", SORT, 1, 3), ("Suppression", SORT, 1, 3),
    ("Rope", ROPE, 8, 1), ("Rotary", ROPE, 8, 1), ("SoftmaxGrad", SOFTMAX, 6, 4), ("Softmax", SOFTMAX, 8, 5), ("CrossEntropy", SOFTMAX, 8, 5), ("Norm", NORM, 8, 4), ("BN", NORM, 4, 2),
    ("wiglu", GLU, 8, 1), ("wiGlu", GLU, 8, 1), ("Glu", GLU, 8, 1), ("GLU", GLU, 8, 1), ("TransData", TRANSDATA, 0, 1), ("Transpose", TRANSPOSE, 0, 1), ("Permute", TRANSPOSE, 0, 1),
    ("Scatter", SCATTER, 0, 1), ("Segment", SCATTER, 0, 1), ("IndexPut", SCATTER, 0, 1), ("KvCache", SCATTER, 0, 1), ("Kvcache", SCATTER, 0, 1), ("KVCache", SCATTER, 0, 1),
    ("Cache", SCATTER, 0, 1), ("Embedding", GATHER, 0, 1), ("Gather", GATHER, 0, 1), ("Index", GATHER, 0, 1), ("Routing", GATHER, 1, 1), ("MoeToken", GATHER, 1, 1),
    ("Mask", ELEMENTWISE, 3, 1), ("Random", RANDOM, 20, 1), ("Normal", RANDOM, 20, 1), ("Uniform", RANDOM, 20, 1), ("Bernoulli", RANDOM, 20, 1), ("GenMask", RANDOM, 20, 1), ("DSA", RANDOM, 20, 1),
    ("Adam", OPTIMISER, 10, 1), ("Momentum", OPTIMISER, 3, 1), ("Lamb", OPTIMISER, 10, 1), ("Apply", OPTIMISER, 8, 1), ("Pool", POOL, 2, 1), ("Resize", RESAMPLE, 8, 1),
    ("Upsample", RESAMPLE, 8, 1), ("Interp", RESAMPLE, 8, 1), ("Sampler", RESAMPLE, 8, 1), ("ROI", RESAMPLE, 8, 1), ("Roi", RESAMPLE, 8, 1), ("Reduce", REDUCE, 2, 2), ("Cum", REDUCE, 3, 2),
    ("Sum", REDUCE, 1, 2), ("Mean", REDUCE, 1, 2), ("Arg", REDUCE, 3, 2), ("Hist", REDUCE, 3, 2), ("Slice", SLICE, 0, 1), ("Split", SLICE, 0, 1), ("Concat", SLICE, 0, 1), ("Pad", SLICE, 0, 1),
    ("Broadcast", SLICE, 0, 1), ("Copy", COPY, 0, 1), ("Move", COPY, 0, 1), ("Memcpy", COPY, 0, 1), ("Fill", FILL, 1, 1), ("Like", FILL, 1, 1), ("RNN", RECURRENT, 20, 4), ("LSTM", RECURRENT, 20, 4),
    ("GRU", RECURRENT, 20, 4), ("Quant", ELEMENTWISE, 5, 1), ("LossGrad", ELEMENTWISE, 5, 1), ("Loss", REDUCE, 5, 2), ("Grad", ELEMENTWISE, 5, 1),
)  # fmt: skip


def _named() -> dict[str, Kind]:
    table: dict[str, Kind] = {}
    for family, ops, stages, names in _TABLE:
        for name in names.split():
            table.setdefault(name, Kind(_ALIASES.get(name, name), family, ops, stages))
    return table


KINDS: dict[str, Kind] = _named()
# types that CANN 8 has no kernel of for these element types: they go to the AI CPU (seen in profiles of 910B and A3)
AI_CPU_I64 = frozenset(
    """FloorDiv FloorMod Mod Pad MirrorPad ScatterElements ScatterAdd ScatterNd Sort TopK Unique Pow Neg_ Cumsum Cumprod ReduceProd
    TruncateDiv Div Reverse Bincount SearchSorted GatherElements_ NonMaxSuppression InTopK Multinomial""".split()
)
AI_CPU_ALWAYS = frozenset(
    """Unique UniqueWithCounts UniqueConsecutive NonMaxSuppression Multinomial RandomChoiceWithMask Bincount BroadcastGradientArgs ConcatOffset
    Cholesky MatrixInverse Logdet Svd Qr Eig CTCLoss Where_ Assert StatelessRandperm DataFormatDimMap SparseToDense Histogram""".split()
)

_SUFFIXES = re.compile(r"(?<=[a-z0-9LlDdNU])(?:V\d+|AiCore|AICore|Ext\d?|Def|D)$")


def _stripped(name: str) -> str:
    """The name without prefixes of an interface and suffixes of a version."""
    name = re.sub(r"^(aclnn|te_|ascendc_)", "", name.split("/")[-1])
    while (shorter := _SUFFIXES.sub("", name)) != name and name not in KINDS:
        name = shorter
    return name


@lru_cache(maxsize=4096)
def kind_of(kind: str, alternative: str = "") -> Kind:
    """What is known of an operator type, by its CANN name or by a second, canonical one.

    >>> kind_of("SoftmaxV2").name, kind_of("ConcatD").family, kind_of("FooNormGrad").listed
    ('Softmax', 'slice', False)
    """
    for raw in (kind, alternative):
        for name in (raw, _stripped(raw)):
            name = _ALIASES.get(name, name)
            if name in KINDS:
                return KINDS[name]
            bare = name.removeprefix("Inplace")
            if bare in KINDS:
                return replace(KINDS[bare], name=name, listed=False)
    for raw in (kind, alternative):
        name = _stripped(raw)
        if name.endswith("Grad") and (base := KINDS.get(name.removesuffix("Grad"))):
            return replace(base, name=name, ops=2 * base.ops, listed=False)
        for part, family, ops, stages in _PARTS:
            if part in name:
                return Kind(name, family, 2 * ops if name.endswith("Grad") and family != ELEMENTWISE else ops, stages, listed=False)
    return Kind(_stripped(kind or alternative), "", 2, 1, listed=False)
