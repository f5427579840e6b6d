"""An index in a folder: kept up to date with its files, its vectors in Milvus, its shards from Ray."""
