"""Rules from ONNX operators to ours, one file for each kind; `rule.load_rules()` imports all that lie here."""
