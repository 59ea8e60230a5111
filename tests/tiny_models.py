"""Tiny models with random weights, and a tokenizer of whole words. Needs torch and transformers."""

SPECIAL = ["<pad>", "</s>", "<unk>", "<user>", "<system>", "<assistant>"]
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} {% endfor %}<assistant>"


def tokenizer(words, template=None):
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    result = Tokenizer(models.WordLevel(unk_token="<unk>"))
    result.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    result.train_from_iterator([" ".join(words)], trainers.WordLevelTrainer(special_tokens=SPECIAL))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=result, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    fast.chat_template = template
    return fast


def llama(words, window=64):
    import torch
    import transformers

    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=window, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def t5(words, size=16, spread=4.0):
    import torch
    import transformers

    torch.manual_seed(5)
    config = transformers.T5Config(
        vocab_size=len(words), d_model=size, d_kv=8, d_ff=2 * size, num_layers=2, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, tie_word_embeddings=False,
        initializer_factor=spread,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def bart(words, window=128):
    import torch
    import transformers

    torch.manual_seed(7)
    config = transformers.BartConfig(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=window,
        pad_token_id=0, eos_token_id=1, bos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=1,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def save_model(folder, model, words):
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def encoder(folder, words, window=24):
    """Save a sentence-transformers model with mean pooling; return its folder."""
    import sentence_transformers
    import transformers

    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)]
    tokens = transformers.BertTokenizerFast(vocab={word: n for n, word in enumerate(known)})
    config = transformers.BertConfig(
        vocab_size=len(known), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=max(40, window),
    )  # fmt: skip
    transformers.set_seed(1)
    transformers.BertModel(config).save_pretrained(folder / "bert")
    tokens.save_pretrained(folder / "bert")
    # A folder without modules of its own gets mean pooling.
    whole = sentence_transformers.SentenceTransformer(str(folder / "bert"), device="cpu")
    whole.max_seq_length = window
    whole.save(str(folder / "whole"))
    return folder / "whole"


def cross_encoder(folder, words, window=64):
    """Save a BERT that gives one number for a pair of texts; return its folder."""
    import transformers

    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokens = transformers.BertTokenizerFast(
        vocab={word: n for n, word in enumerate(known)}, do_lower_case=False
    )
    config = transformers.BertConfig(
        vocab_size=len(known), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=window, num_labels=1,
    )  # fmt: skip
    transformers.set_seed(1)
    return save_model(folder, transformers.BertForSequenceClassification(config), tokens)
