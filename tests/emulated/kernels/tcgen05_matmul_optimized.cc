// Compiled with the headers of include/ in place of the toolkit's and of src/ptx.
#include "catalog/ch10/tcgen05_matmul/optimized.sm100a.cu"
