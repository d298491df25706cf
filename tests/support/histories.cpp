#include "llmbench.hpp"
#include "extensions/history/keeper.hpp"
