// Compiled with the headers of include/ in place of the toolkit's and of src/ptx.
#include "catalog/labs/matmul_ladder_blackwell/rung_2_tcgen05.sm100a.cu"
