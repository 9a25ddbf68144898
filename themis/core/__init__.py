"""Values that everything speaks: entities, codec, fingerprints, registry, tokens, redaction."""
