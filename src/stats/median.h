// Medians, quantiles and spreads of plain numbers.
#pragma once
#include <vector>

#include "stats/interval.h"

namespace gauntlet::stats {

double median(std::vector<double> values);
/// The nearest of the values; reorders them.
double quantile(std::vector<double>& values, double q);
/// Interquartile range over the median; 0 of fewer than four.
double spread(const std::vector<double>& values);

/// The median and the order statistics around it that hold it with 95% confidence, or the extremes
/// where there are too few values for that; one value has no interval.
Interval median_interval(std::vector<double> values);

/// 95% interval of the mean of values that are normal, by Student's t; needs two.
Interval student_interval(const std::vector<double>& values);
/// Where one more such value lies with 95% probability, by Student's t; needs two.
Interval prediction_interval(const std::vector<double>& values);

}  // namespace gauntlet::stats
