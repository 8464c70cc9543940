// Compiled with the headers of include/ in place of the toolkit's and of src/ptx.
#include "catalog/ch10/tcgen05_matmul/baseline.sm100a.cu"
