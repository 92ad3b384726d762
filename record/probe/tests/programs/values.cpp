#include "values.h"

int main()
{
	return values();
}
