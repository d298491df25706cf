// What nearly every unit test reads of others' headers, read once.
#pragma once

#include <doctest/doctest.h>
#include <picojson.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
