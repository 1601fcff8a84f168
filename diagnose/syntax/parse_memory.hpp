// Memory for tree-sitter: small blocks by size, kept by the thread that freed them. A parse asks
// for a hundred thousand of them, which a general allocator serves at several times the price.
#pragma once

namespace bench::diagnose {

// Makes tree-sitter use it. Before its first allocation, and once.
void use_parse_memory();

}  // namespace bench::diagnose
