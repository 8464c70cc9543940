// What a linear layer y = x·Wᵀ must give: a product whose second operand is stored by columns, as
// weights are.
#pragma once
#include <string>

#include "lab/author/product.h"
#include "lab/author/reference.h"

namespace gauntlet::lab::inline author {

/// Like expect_product(), with `product.b` stored [n, k]; one product, no batch.
void expect_linear(Reference& reference, const std::string& name, const Product& product,
                   Rounding rounding, std::int64_t stride);

}  // namespace gauntlet::lab::inline author
