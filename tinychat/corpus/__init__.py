"""Read files as documents and conversations: formats, encodings, sources, known data sets, verbatim overlap."""
