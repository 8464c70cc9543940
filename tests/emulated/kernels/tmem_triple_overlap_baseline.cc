// Compiled with the headers of include/ in place of the toolkit's and of src/ptx.
#include "catalog/ch10/tmem_triple_overlap/baseline.sm100a.cu"
